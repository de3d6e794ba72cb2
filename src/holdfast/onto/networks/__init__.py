"""Tables that are networks: flows along arcs."""
