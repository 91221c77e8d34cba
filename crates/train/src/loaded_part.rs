use std::fmt;

use brisk_nn::Parameters;

use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::standardisation::Standardisation;

/// What [`Model::load_part`](crate::Model::load_part) took from a file, and what it left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadedPart {
    /// The parameters and buffers of the model that have the values of the file.
    pub loaded: Vec<String>,
    /// Those that begin with the prefix and are not in the file: they keep their values.
    pub missing: Vec<String>,
    /// Tensors of the file that the model does not have, or that do not begin with the prefix.
    pub unexpected: Vec<String>,
    /// Those of another shape, or of another type than f32: they keep their values.
    pub mismatched: Vec<MismatchedTensor>,
}

/// A tensor that has another shape in a file than in a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MismatchedTensor {
    /// Its name.
    pub name: String,
    /// Its shape in the file.
    pub found: Vec<usize>,
    /// Its shape in the model.
    pub expected: Vec<usize>,
}

impl fmt::Display for MismatchedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, found, expected } = self;
        write!(f, "`{name}` is {found:?} in the file, {expected:?} in the model")
    }
}

impl LoadedPart {
    /// Replaces the values of `params` whose names begin with `prefix`.
    pub(crate) fn load(params: &mut Parameters, checkpoint: &Checkpoint, prefix: &str) -> Result<Self, Error> {
        let mut part = Self::default();
        for id in params.ids_where(|entry| entry.name.starts_with(prefix)) {
            let entry = params.entry(id).clone();
            if let Some(values) = part.look_up(checkpoint, &entry.name, &entry.shape) {
                params.set_initial(id, values)?;
            }
        }
        for id in params.buffer_ids() {
            let buffer = params.buffer(id);
            if buffer.name().starts_with(prefix)
                && let Some(values) = part.look_up(checkpoint, buffer.name(), buffer.shape())
            {
                params.set_initial_buffer(id, values)?;
            }
        }
        if part.loaded.is_empty() {
            // The error of the first tensor says what the file has instead.
            let first = params.entries().iter().find(|entry| entry.name.starts_with(prefix));
            first.map_or(Ok(()), |entry| {
                let found = checkpoint.f32(&entry.name, &entry.shape).map(drop);
                found.map_err(|mut error| {
                    if let (Error::CheckpointEntry { expected, .. }, Some(before)) =
                        (&mut error, prefix_before(&[&entry.name], checkpoint))
                    {
                        *expected = expected_within(before).into();
                    }
                    error
                })
            })?;
            let expected = "the start of the names of some of the model's parameters";
            return Err(Error::setting("prefix", format!("{prefix:?}"), expected));
        }
        let is_known =
            |name: &str| part.loaded.iter().chain(part.mismatched.iter().map(|found| &found.name)).any(|known| known == name);
        let of_file = checkpoint.tensors().map(|(name, ..)| name).filter(|name| !Standardisation::is_named(name));
        part.unexpected = of_file.filter(|name| !is_known(name)).map(str::to_owned).collect();
        Ok(part)
    }

    /// The values of a tensor of the file, if it fits.
    fn look_up<'c>(&mut self, checkpoint: &'c Checkpoint, name: &str, shape: &[usize]) -> Option<&'c [f32]> {
        let values = checkpoint.f32(name, shape).ok();
        match (values, checkpoint.shape(name)) {
            (Some(_), _) => self.loaded.push(name.to_owned()),
            (None, Some(found)) => {
                let (name, found, expected) = (name.to_owned(), found.to_vec(), shape.to_vec());
                self.mismatched.push(MismatchedTensor { name, found, expected });
            }
            (None, None) => self.missing.push(name.to_owned()),
        }
        values
    }
}

/// What stands before all of these names in a file that lacks them, such as the `module.` of PyTorch's `DataParallel`.
pub(crate) fn prefix_before<'c>(own: &[&str], checkpoint: &'c Checkpoint) -> Option<&'c str> {
    let last = own.last()?;
    let prefixes = checkpoint.tensors().filter_map(|(name, ..)| name.strip_suffix(last).filter(|prefix| prefix.ends_with('.')));
    prefixes.into_iter().find(|prefix| own.iter().all(|name| checkpoint.contains(&format!("{prefix}{name}"))))
}

/// What is expected of a tensor that a file has with a prefix.
pub(crate) fn expected_within(prefix: &str) -> String {
    let path = prefix.trim_end_matches('.');
    format!(
        "there; all names are in the file with `{prefix}` before them, as DataParallel (`module.`) and torch.compile (`_orig_mod.`) write them: \
         build the model by `|params| params.within({path:?}, …)`, or write the file without, such as by `model.{path}.state_dict()`"
    )
}
