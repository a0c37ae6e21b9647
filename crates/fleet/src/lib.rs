//! An ARM-shaped API whose operations survive, and clusters installed through Hive.
