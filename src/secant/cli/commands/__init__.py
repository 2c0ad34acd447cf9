"""One small file per command; `cli.program` lists them."""
