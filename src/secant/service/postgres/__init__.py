"""The PostgreSQL port: clients of PostgreSQL ask Secant, which answers through a server that holds no data."""
