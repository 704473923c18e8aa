//! The sandbox, with real processes.

#[cfg(test)]
mod engine;
#[cfg(test)]
mod escapes;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hosts;
#[cfg(test)]
mod language;
#[cfg(test)]
mod lives;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tenants;
