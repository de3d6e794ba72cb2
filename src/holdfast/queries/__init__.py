"""What is asked of the data, and how much one record can change the answer."""
