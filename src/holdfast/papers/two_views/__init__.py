"""Two Views, item by item."""
