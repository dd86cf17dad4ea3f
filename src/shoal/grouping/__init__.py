"""Who is counted with whom: group sizes, random groups, leave-one-out rotas."""
