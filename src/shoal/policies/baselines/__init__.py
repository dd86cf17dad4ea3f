"""References: policies that learn nothing, and policies that see every reward."""
