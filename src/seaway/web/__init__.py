"""Web pages of the control plane. They read all data from its API, with the user's permissions."""
