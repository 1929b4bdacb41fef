//! Describing the machine this runs on.
