"""All fitted numbers: calibrations, trained weights with their cards (data, licence, seed, command), golden tensors."""
