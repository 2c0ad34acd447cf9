"""From a bounded plan to an answer: SQL text for an engine, the engine itself, the noise, the rest of the query."""
