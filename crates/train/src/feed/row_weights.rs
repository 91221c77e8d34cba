//! The weights of all rows of the batches of which a replica reads a part.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use brisk_loader::Order;

use crate::rows::RowLayout;

/// What a feed knows of the weights of a source's rows.
#[derive(Debug, Clone)]
pub(crate) enum RowWeights {
    /// Nothing. Streamed batches are read whole, since the sum of the weights of a batch needs those of all its rows.
    Unknown,
    /// The weight of each row, so that streamed batches can be read by part.
    Known(Rc<[f32]>),
    /// They are not used: every row counts once.
    Unused,
}

impl RowWeights {
    /// The fields of a row that the feed has.
    pub(super) fn in_layout(&self, layout: RowLayout) -> RowLayout {
        RowLayout { has_weights: layout.has_weights && !matches!(self, Self::Unused), ..layout }
    }

    /// Those of whole batches, if they are known and rows have some.
    pub(super) fn of_batches(&self, layout: RowLayout, order: &Order) -> Option<BatchWeights> {
        match self {
            Self::Known(of_rows) if layout.has_weights => Some(BatchWeights { of_rows: of_rows.clone(), order: order.clone() }),
            _ => None,
        }
    }
}

/// The weights of whole batches of a streamed feed, in the order of the feed.
#[derive(Clone)]
pub(super) struct BatchWeights {
    /// Of each row of the source.
    of_rows: Rc<[f32]>,
    order: Order,
}

impl BatchWeights {
    /// Those of the rows at some positions of an epoch.
    pub(super) fn at(&self, epoch: u32, positions: Range<usize>) -> Vec<f32> {
        // Row numbers are `u32`.
        let mut rows: Vec<u32> = (positions.start as u32..positions.end as u32).collect();
        self.order.of_epoch(self.of_rows.len() as u32, epoch).permute(&mut rows);
        rows.into_iter().map(|row| self.of_rows[row as usize]).collect()
    }
}

impl fmt::Debug for BatchWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchWeights").field("n_rows", &self.of_rows.len()).finish_non_exhaustive()
    }
}
