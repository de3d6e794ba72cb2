"""What must hold, written out for the outputs of a query: rows, null spaces, independent parts."""
