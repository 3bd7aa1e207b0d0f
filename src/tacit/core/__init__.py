"""What every setting stands on: kernels, tapes, samplers, arrays, constraints, specs, policies."""
