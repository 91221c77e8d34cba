use std::fmt;

/// Information about a device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The name given by the driver; for the CPU executor, the number of threads.
    pub name: String,
    /// The executor, and whether a GPU is hardware or software.
    pub kind: DeviceKind,
    /// `vulkan`, `metal`, `dx12`, or `rust` for the CPU executor.
    pub backend: String,
    /// Why [`Selection::Best`](crate::Selection::Best) skipped an available GPU: the error of opening it. `None` for a device
    /// that was selected explicitly.
    pub fallback: Option<String>,
    /// The driver's errors at failed attempts to open the adapter, before it opened: another process may have kept it busy.
    pub failed_attempts: Vec<String>,
    /// Why the adapter's cooperative matrices are not used, if they failed a self-check when the device was opened.
    pub coop_refused: Option<String>,
}

/// The executor, and whether a GPU is hardware or software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The plain-Rust twins.
    Cpu,
    /// WGSL on a hardware GPU.
    Gpu,
    /// WGSL on a software adapter.
    Software,
}

impl DeviceInfo {
    pub(crate) const fn new(name: String, kind: DeviceKind, backend: String) -> Self {
        Self { name, kind, backend, fallback: None, failed_attempts: Vec::new(), coop_refused: None }
    }
}

impl DeviceKind {
    /// The executor's name in results: `cpu` or `gpu`.
    pub const fn executor(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu | Self::Software => "gpu",
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Software => "software",
        })
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.name, self.kind, self.backend)?;
        if let Some(reason) = &self.fallback {
            write!(f, "; {reason}")?;
        }
        if let Some(reason) = &self.coop_refused {
            write!(f, "; without cooperative matrices: {reason}")?;
        }
        match self.failed_attempts.last() {
            None => Ok(()),
            Some(reason) => write!(f, "; opened at attempt {}, after: {reason}", self.failed_attempts.len() + 1),
        }
    }
}
