use brisk_nn::tensor::program::{Device, DeviceBuilder, Selection};
use clap::Args;

use super::value;

/// The option of every example that runs on one device.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct DeviceOption {
    /// Where to run: best, cpu, gpu, software, or the name or index of an adapter
    #[arg(long = "device", value_name = "DEVICE", help_heading = "Running", env = "BRISK_DEVICE", hide_env_values = true,
        default_value = "best", value_parser = value::device())]
    selection: Selection,
}

impl DeviceOption {
    /// A builder of the selected device.
    pub fn builder(&self) -> DeviceBuilder {
        Device::builder().selection(self.selection.clone())
    }
}
