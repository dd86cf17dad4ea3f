-- Two databases and two users that can't see each other's. Run as a superuser, with psql:
--   psql -v aggregator_password=... -v learner_password=... -f postgres.sql
CREATE ROLE shoal_aggregator LOGIN PASSWORD :'aggregator_password';
CREATE ROLE shoal_learner LOGIN PASSWORD :'learner_password';
CREATE DATABASE shoal_aggregator OWNER shoal_aggregator;
CREATE DATABASE shoal_learner OWNER shoal_learner;
REVOKE ALL ON DATABASE shoal_aggregator FROM PUBLIC;
REVOKE ALL ON DATABASE shoal_learner FROM PUBLIC;
