//! One ElastiService: what it should be doing, and why.
