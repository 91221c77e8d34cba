use std::str::FromStr;

/// Which device to use: the values of `BRISK_DEVICE` and of every `--device` option.
///
/// # Examples
/// ```
/// use brisk_program::Selection;
///
/// assert_eq!("gpu".parse(), Ok(Selection::Gpu));
/// assert_eq!("0".parse(), Ok(Selection::Index(0)));
/// assert_eq!("GeForce".parse(), Ok(Selection::Name("GeForce".to_owned())));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Selection {
    /// `best`, `auto` or nothing: a hardware GPU if there is one, else the CPU. A GPU that does not open is skipped, and
    /// [`DeviceInfo::fallback`](crate::DeviceInfo::fallback) says why.
    #[default]
    Best,
    /// `cpu`: the CPU executor.
    Cpu,
    /// `gpu`: a hardware GPU, discrete before integrated.
    Gpu,
    /// `software`: a software adapter, such as Mesa's llvmpipe.
    Software,
    /// A number: the adapter with this index in [`Device::list`](crate::Device::list).
    Index(usize),
    /// Any other word: the first adapter whose name contains it, ignoring case.
    Name(String),
}

impl Selection {
    /// The value of `BRISK_DEVICE`; [`Selection::Best`] if it is not set.
    pub fn from_env() -> Self {
        // A value that is not valid Unicode matches no device, and is an error when the device is opened.
        std::env::var_os("BRISK_DEVICE").map_or(Self::Best, |word| Self::of_word(&word.to_string_lossy()))
    }

    fn of_word(word: &str) -> Self {
        let word = word.trim();
        match word.to_lowercase().as_str() {
            "" | "best" | "auto" => Self::Best,
            "cpu" => Self::Cpu,
            "gpu" => Self::Gpu,
            "software" => Self::Software,
            other => other.parse().map_or_else(|_| Self::Name(word.to_owned()), Self::Index),
        }
    }
}

impl FromStr for Selection {
    type Err = std::convert::Infallible;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(Self::of_word(word))
    }
}

impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Best => f.write_str("best"),
            Self::Cpu => f.write_str("cpu"),
            Self::Gpu => f.write_str("gpu"),
            Self::Software => f.write_str("software"),
            Self::Index(index) => write!(f, "{index}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}
