"""The paper's algorithms: BaSE, its grid, the sub-algorithm, Algorithm 1 and Algorithm 2."""
