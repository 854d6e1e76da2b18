"""Parts on several devices: proof against one device, and times beside it."""
