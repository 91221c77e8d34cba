use brisk_kernels::DType;
use brisk_tensor::program::Device;
use brisk_tensor::{Error, Persistent};

use crate::entry::len_of;
use crate::newest::Newest;
use crate::origin::Id;

/// A tensor that belongs to a model but is not trained: running statistics, a frozen scale.
///
/// It is kept in a separate buffer next to the flat parameters, so optimizers, norms and weight decay do not include it. A
/// checkpoint keeps it under its name, as PyTorch's `state_dict` does.
#[derive(Debug, Clone)]
pub struct Buffer {
    name: String,
    shape: Vec<usize>,
    values: Persistent,
    initial: Initial,
    newest: Newest,
}

/// The initial value of a buffer.
#[derive(Debug, Clone)]
enum Initial {
    Constant(f32),
    Values(Vec<f32>),
}

/// The id of a buffer of a [`Parameters`](crate::Parameters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BufferId(pub(crate) Id);

impl Buffer {
    pub(crate) fn new(name: String, shape: &[usize], value: f32) -> Self {
        // `Parameters::check` refuses one that is too large before it is used.
        let len = len_of(shape).unwrap_or(0);
        let values = Persistent::required(name.clone(), DType::F32, len);
        Self { values, name, shape: shape.to_vec(), initial: Initial::Constant(value), newest: Newest::default() }
    }

    /// Dotted, as in PyTorch's `state_dict`: `norm.running_mean`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lengths of its dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its values on the device.
    pub fn values(&self) -> &Persistent {
        &self.values
    }

    /// Its initial values: `[len]`.
    pub fn initial(&self) -> Vec<f32> {
        match &self.initial {
            Initial::Constant(value) => vec![*value; self.values.len()],
            Initial::Values(values) => values.clone(),
        }
    }

    /// The same buffer with separate memory for its values.
    pub(crate) fn detached(&self) -> Self {
        self.with_values(&Persistent::required(self.name.clone(), DType::F32, self.values.len()))
    }

    /// The same buffer with its values in different memory.
    pub(crate) fn with_values(&self, values: &Persistent) -> Self {
        Self { values: values.clone(), newest: Newest::default(), ..self.clone() }
    }

    /// Its newest values: `[len]`, those on the device that has last written to it, or the initial ones.
    ///
    /// # Errors
    /// [`Error::Program`] if the device fails.
    pub fn newest(&self) -> Result<Vec<f32>, Error> {
        self.newest.device(&self.values).map_or_else(|| Ok(self.initial()), |device| Ok(device.read(&self.values)?))
    }

    pub(crate) fn write_initial(&self, device: &Device) -> Result<(), Error> {
        device.write(&self.values, &self.initial())?;
        self.newest.set_equal(&self.values);
        Ok(())
    }

    pub(crate) fn write_newest(&self, device: &Device) -> Result<(), Error> {
        match self.newest.device(&self.values) {
            Some(newest) if newest.is_same(device) => Ok(()),
            Some(newest) => Ok(device.write(&self.values, &newest.read::<f32>(&self.values)?)?),
            None if self.newest.is_initial_on(&self.values, device) => Ok(()),
            None => self.write_initial(device),
        }
    }

    pub(crate) fn fetch(&mut self) -> Result<(), Error> {
        if let Some(device) = self.newest.device(&self.values) {
            self.initial = Initial::Values(device.read(&self.values)?);
            self.newest.set_equal(&self.values);
        }
        Ok(())
    }

    pub(crate) fn keep_initial(&self) {
        self.newest.set_initial(&self.values);
    }

    pub(crate) fn set_initial(&mut self, values: &[f32]) -> Result<(), Error> {
        match self.newest.device(&self.values) {
            Some(device) => device.write(&self.values, values)?,
            None => self.newest.set_initial(&self.values),
        }
        self.initial = Initial::Values(values.to_vec());
        Ok(())
    }
}
