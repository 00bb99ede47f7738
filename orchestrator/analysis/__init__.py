"""What stored results say, as typed values: nothing here prints, and nothing here writes."""
