use std::sync::{Arc, Mutex, PoisonError};

/// How features were standardised before a model was trained on them: `(x - mean) * inv_std`, column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureScale {
    /// The mean of each column.
    pub mean: Vec<f32>,
    /// One over the standard deviation of each column.
    pub inv_std: Vec<f32>,
}

/// The features that parameters were trained on, the same for all clones.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrainedOn(Arc<Mutex<Values>>);

#[derive(Debug, Clone, Default)]
struct Values {
    newest: Option<Arc<FeatureScale>>,
    initial: Option<Arc<FeatureScale>>,
}

impl TrainedOn {
    fn with<T>(&self, f: impl FnOnce(&mut Values) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The newest values are now the initial ones.
    pub(crate) fn fetch(&self) {
        self.with(|values| values.initial = values.newest.clone());
    }

    /// The initial values are now the newest.
    pub(crate) fn keep_initial(&self) {
        self.with(|values| values.newest = values.initial.clone());
    }

    /// A copy for parameters with separate memory.
    pub(crate) fn detached(&self) -> Self {
        Self(Arc::new(Mutex::new(self.with(|values| values.clone()))))
    }

    /// The standardisation of the features that the newest values were trained on.
    pub(crate) fn newest(&self) -> Option<Arc<FeatureScale>> {
        self.with(|values| values.newest.clone())
    }

    /// Sets that of the newest values.
    pub(crate) fn set_newest(&self, features: Option<Arc<FeatureScale>>) {
        self.with(|values| values.newest = features);
    }

    /// Sets that of the initial values, which are the newest.
    pub(crate) fn set_initial(&self, features: Option<Arc<FeatureScale>>) {
        self.with(|values| values.initial = features);
        self.keep_initial();
    }
}
