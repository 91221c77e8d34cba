use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::order::Order;
use crate::plan::Plan;

/// The state of an epoch: everything that is needed to resume it with the same remaining rows. Created by
/// [`Epoch::state`](crate::Epoch::state), for [`Loader::resume`](crate::Loader::resume).
///
/// It counts rows that were *consumed*, however many more batches are ready, and does not depend on batch size, ranks, threads or
/// workers: all of these may change before resuming. It is plain data; `to_string` gives one line, which can be parsed again.
///
/// # Examples
/// ```
/// use brisk_loader::{Batching, Loader, Rows, State};
///
/// let rows = Rows::new(vec![0.5; 1000], vec![1.0; 1000], 1)?;
/// let mut loader = Loader::new(&rows, Batching::of(64).shuffled(42))?;
/// let mut batches = loader.epoch(3);
/// batches.next_batch()?;
/// let line = batches.state().to_string();
/// drop(batches);
/// assert_eq!(line, "brisk-loader 1 epoch=3 position=64 n_rows=1000 fingerprint=none order=shuffled:42");
///
/// let state: State = line.parse()?;
/// let mut batches = loader.resume(&state)?;
/// assert_eq!(batches.next_batch()?.expect("the second batch").index, 1);
/// # Ok::<(), brisk_loader::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The epoch.
    pub epoch: u32,
    /// The number of rows of the epoch that all ranks have consumed.
    pub position: u64,
    /// The number of rows of the source.
    pub n_rows: u64,
    /// The source's [`fingerprint`](crate::RowSource::fingerprint).
    pub fingerprint: Option<u64>,
    /// The order with its seed and sizes, as [`Order`] is displayed: `shuffled:42`.
    pub order: String,
}

/// The first words of a state as text; the number is the version of the format.
const HEAD: &str = "brisk-loader 1 ";

/// The properties of the source in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) n_rows: usize,
    pub(crate) fingerprint: Option<u64>,
}

impl Identity {
    pub(crate) fn state(self, plan: &Plan, order: &Order, n_taken: usize) -> State {
        State {
            epoch: plan.key().epoch,
            position: plan.position_after(n_taken) as u64,
            n_rows: self.n_rows as u64,
            fingerprint: self.fingerprint,
            order: order.to_string(),
        }
    }

    /// The position to resume from, after checking that the state belongs to these rows in this order.
    pub(crate) fn position(self, state: &State, order: &Order) -> Result<usize, Error> {
        let differs = |what, saved: String, found: String| Err(Error::State { what, saved, found });
        let order = order.to_string();
        if state.n_rows != self.n_rows as u64 {
            return differs("number of rows", state.n_rows.to_string(), self.n_rows.to_string());
        }
        // An unknown fingerprint does not count as a difference.
        if let (Some(saved), Some(found)) = (state.fingerprint, self.fingerprint)
            && saved != found
        {
            return differs("fingerprint of the rows", format!("{saved:016x}"), format!("{found:016x}"));
        }
        if state.order != order {
            return differs("order", state.order.clone(), order);
        }
        usize::try_from(state.position).map_err(|_| Error::Position { position: usize::MAX, n_rows: self.n_rows })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epoch, position, n_rows, fingerprint, order } = self;
        write!(f, "{HEAD}epoch={epoch} position={position} n_rows={n_rows} fingerprint=")?;
        match fingerprint {
            Some(fingerprint) => write!(f, "{fingerprint:016x}")?,
            None => f.write_str("none")?,
        }
        write!(f, " order={order}")
    }
}

impl FromStr for State {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).ok_or_else(|| Error::StateText { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<State> {
    let mut fields = text.trim().strip_prefix(HEAD)?.splitn(5, ' ');
    let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
    Some(State {
        epoch: field("epoch")?.parse().ok()?,
        position: field("position")?.parse().ok()?,
        n_rows: field("n_rows")?.parse().ok()?,
        fingerprint: match field("fingerprint")? {
            "none" => None,
            hex => Some(u64::from_str_radix(hex, 16).ok()?),
        },
        order: field("order")?.to_owned(),
    })
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequential => f.write_str("sequential"),
            Self::Shuffled { seed } => write!(f, "shuffled:{seed}"),
            Self::Blocks { seed, block_rows, window_blocks } => write!(f, "blocks:{seed}:{block_rows}:{window_blocks}"),
            Self::Lanes(lanes) => lanes.fmt(f),
            Self::Weighted { seed, draws } => write!(f, "weighted:{seed}:{}:{:016x}", draws.n_draws(), draws.fingerprint()),
        }
    }
}
