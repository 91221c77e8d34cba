//! Errors of the crates below, and of parsing.

use std::str::FromStr;

use brisk_nn::tensor::program::kernels::Outside;

use super::{Error, ResumeMismatch};

impl From<brisk_nn::tensor::program::Error> for Error {
    fn from(error: brisk_nn::tensor::program::Error) -> Self {
        Self::from(brisk_nn::Error::from(error))
    }
}

impl From<brisk_nn::Error> for Error {
    fn from(error: brisk_nn::Error) -> Self {
        use brisk_nn::tensor::program::Error as ProgramError;
        // The message of a replica's error in the middle of a step is complete by itself.
        let of_replicas = match &error {
            brisk_nn::Error::Program(ProgramError::HostStep { cause, .. }) => cause.downcast_ref::<brisk_replicate::Error>(),
            _ => None,
        };
        of_replicas.cloned().map_or(Self::Tensor(error), Self::Replica)
    }
}

impl From<Outside> for Error {
    fn from(Outside { name, found, expected, .. }: Outside) -> Self {
        Self::Setting { name, found, expected: expected.into() }
    }
}

impl FromStr for ResumeMismatch {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|mismatch| mismatch.name() == name);
        let expected = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| Error::Setting { name: "difference", found: format!("{name:?}"), expected: expected().into() })
    }
}
