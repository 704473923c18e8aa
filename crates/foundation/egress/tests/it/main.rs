//! The connector against servers on loopback and a scripted resolver. Nothing here leaves the machine.

#[cfg(test)]
mod coding;
mod exchange;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod redirects;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tls;
