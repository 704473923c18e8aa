//! Values that the program passes to operations and groups by their type.

use model::{Error, Result};
use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::sync::Arc;

type Shared = Arc<dyn Any + Send + Sync>;

/// Shared values by type: a single value of most types, and a list of values of some.
#[derive(Default, Clone)]
pub struct Services {
    single: HashMap<TypeId, Shared>,
    listed: HashMap<TypeId, Vec<Shared>>,
}

impl Services {
    /// Adds the value of a type. It replaces an earlier one.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(self, value: T) -> Self {
        self.with_shared(Arc::new(value))
    }

    /// Adds the shared value of a type. It replaces an earlier one.
    #[must_use]
    pub fn with_shared<T: Any + Send + Sync>(mut self, value: Arc<T>) -> Self {
        self.single.insert(TypeId::of::<T>(), value);
        self
    }

    /// Adds a value to the list of its type.
    #[must_use]
    pub fn with_one_of<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.listed.entry(TypeId::of::<T>()).or_default().push(Arc::new(value));
        self
    }

    /// Adds all values of `others`.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.single.extend(others.single);
        for (key, values) in others.listed {
            self.listed.entry(key).or_default().extend(values);
        }
        self
    }

    /// Returns the value of this type.
    ///
    /// # Errors
    /// `internal_error` if there is none. Every test that starts the service finds such a mistake.
    pub fn get<T: Any + Send + Sync>(&self) -> Result<Arc<T>> {
        self.single
            .get(&TypeId::of::<T>())
            .and_then(|value| value.clone().downcast::<T>().ok())
            .ok_or_else(|| Error::internal(format!("the service {} is not wired", type_name::<T>())))
    }

    /// Returns a clone of the value of this type.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub fn cloned<T: Any + Clone + Send + Sync>(&self) -> Result<T> {
        self.get::<T>().map(|value| T::clone(&value))
    }

    /// Returns all values of a type that were added with [`with_one_of`](Self::with_one_of), in the same order.
    pub fn all<T: Any + Clone + Send + Sync>(&self) -> Vec<T> {
        let listed = self.listed.get(&TypeId::of::<T>()).into_iter().flatten();
        listed.filter_map(|value| value.downcast_ref::<T>().cloned()).collect()
    }
}
