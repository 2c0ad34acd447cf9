"""How far ordinary questions are off under `unit`, beside the best known algorithm with clips that know the data."""
