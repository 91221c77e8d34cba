//! The parts of the attack, one file each.

mod background;
#[cfg(feature = "all-formats")]
pub(crate) mod cache_kills;
mod full_disk;
mod hostile;
mod import_kills;
mod names;
mod options;
mod outputs;
mod rank_kills;
mod resuming;
mod same_pid;
pub(crate) mod shard_kills;
mod signals;
pub(crate) mod silent;
mod training_kills;
mod unlike_ranks;
#[cfg(feature = "all-formats")]
mod url_kills;
mod wrong_results;
mod zero_kills;

use anyhow::Result;

use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;

/// A part of the attack.
pub(crate) struct Part {
    pub(crate) name: PartName,
    /// Its share of the time for random cases, relative to the other parts; 0 if it has listed cases only.
    pub(crate) weight: f64,
    pub(crate) prepare: fn(&Attack<'_>) -> Result<Prepared>,
}

/// Whether a part can run on this machine.
pub(crate) enum Prepared {
    Ready(Box<dyn Cases>),
    /// This machine does not allow it, for this reason.
    NotPossible(String),
}

impl Prepared {
    fn ready(cases: impl Cases + 'static) -> Result<Self> {
        Ok(Self::Ready(Box::new(cases)))
    }
}

/// The cases of a part, and the data they share.
pub(crate) trait Cases {
    /// The number of listed cases; those with higher numbers are random.
    fn n_listed(&self) -> u64 {
        0
    }

    /// Runs the case with the number `case.index`. An error means that the attack itself failed, not the program.
    fn run(&self, case: &mut Case<'_>) -> Result<()>;
}

/// What stands for a part without a client of servers.
#[cfg(not(feature = "all-formats"))]
const fn without_urls(name: PartName) -> Part {
    let prepare = |_: &Attack<'_>| Ok(Prepared::NotPossible("the attack was built without the feature `all-formats`".to_owned()));
    Part { name, weight: 0.0, prepare }
}

pub(crate) const PARTS: &[Part] = &[
    background::PART,
    names::PART,
    outputs::PART,
    options::PART,
    resuming::PART,
    wrong_results::PART,
    silent::PART,
    unlike_ranks::PART,
    import_kills::PART,
    shard_kills::PART,
    #[cfg(feature = "all-formats")]
    cache_kills::PART,
    #[cfg(not(feature = "all-formats"))]
    without_urls(PartName::CacheKills),
    training_kills::PART,
    rank_kills::PART,
    #[cfg(feature = "all-formats")]
    url_kills::PART,
    #[cfg(not(feature = "all-formats"))]
    without_urls(PartName::UrlKills),
    zero_kills::PART,
    same_pid::PART,
    hostile::PART,
    full_disk::PART,
    signals::PART,
];
