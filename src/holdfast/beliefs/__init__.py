"""The two views on finite worlds in exact fractions, and the enumeration oracle of the tests."""
