//! The list: its parameters, its pages, its refusals.
