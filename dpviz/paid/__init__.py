"""Preparation that is paid for: a private mean, scale, row bound and count, on public bounds."""
