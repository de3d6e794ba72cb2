"""How far records reach within a subspace: sensitivities of projected answers."""
