"""Print what concerns one domain on several devices: its parts, their proofs, predicted scaling."""
