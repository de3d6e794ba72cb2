"""A job made from a spec: mechanisms, methods, errors, what is not protected."""
