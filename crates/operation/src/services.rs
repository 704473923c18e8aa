//! What the binary wires together and operations ask for by type.

use model::{Error, Result};
use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::sync::Arc;

/// Shared values, one of a type. Filled once at start.
#[derive(Default, Clone)]
pub struct Services(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Services {
    /// Adds a value; the last of a type wins.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// Adds a value that is shared with somebody else already.
    #[must_use]
    pub fn with_shared<T: Any + Send + Sync>(mut self, value: Arc<T>) -> Self {
        self.0.insert(TypeId::of::<T>(), value);
        self
    }

    /// Adds all values of others; the last of a type wins.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// The value of this type.
    ///
    /// # Errors
    /// `internal_error` where the binary wired none: a mistake in its composition, which a test catches.
    pub fn get<T: Any + Send + Sync>(&self) -> Result<Arc<T>> {
        self.0
            .get(&TypeId::of::<T>())
            .and_then(|value| value.clone().downcast::<T>().ok())
            .ok_or_else(|| Error::internal(format!("the service {} is not wired", type_name::<T>())))
    }
}
