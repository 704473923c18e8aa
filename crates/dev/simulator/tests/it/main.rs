//! Tests of the simulator with the real adapter over HTTP.

#[cfg(test)]
mod callbacks;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod control;
#[cfg(test)]
mod customers;
#[cfg(test)]
mod files;
#[cfg(test)]
mod outcomes;
#[cfg(test)]
mod sending;
#[cfg(test)]
mod support;
#[cfg(test)]
mod templates;
