use std::str::FromStr;

/// Which device to take: the words of `BRISK_DEVICE` and of every `--device`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// A hardware GPU if there is one, else the CPU.
    #[default]
    Best,
    /// The CPU executor.
    Cpu,
    /// A hardware GPU.
    Gpu,
    /// A software adapter, such as Mesa's llvmpipe.
    Software,
    /// The adapter with this index in [`Device::list`](crate::Device::list).
    Index(usize),
    /// The first adapter whose name contains this, in any case.
    Name(String),
}

impl Selection {
    /// What `BRISK_DEVICE` says, [`Selection::Best`] where it is not set.
    pub fn from_env() -> Self {
        std::env::var("BRISK_DEVICE").map_or(Self::Best, |word| word.parse().unwrap_or(Self::Best))
    }
}

impl FromStr for Selection {
    type Err = std::convert::Infallible;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let word = word.trim();
        Ok(match word.to_lowercase().as_str() {
            "" | "best" | "auto" => Self::Best,
            "cpu" => Self::Cpu,
            "gpu" => Self::Gpu,
            "software" => Self::Software,
            other => other.parse().map_or_else(|_| Self::Name(word.to_owned()), Self::Index),
        })
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
