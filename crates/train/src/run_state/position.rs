use std::fmt;
use std::str::FromStr;

/// The position of a run: a number of finished epochs, and of batches of the next one. The earlier of two is the smaller.
///
/// Its [`Display`](fmt::Display) form is used in checkpoints, `3` after three epochs, `3+40` forty batches later, and parses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) n_epochs: usize,
    pub(crate) n_batches: usize,
}

impl Position {
    /// The position after the batch `batch` of an epoch, or at the end of the epoch; both count from 1.
    pub(crate) fn of(epoch: usize, batch: Option<usize>) -> Self {
        match batch {
            None => Self { n_epochs: epoch, n_batches: 0 },
            Some(n_batches) => Self { n_epochs: epoch.saturating_sub(1), n_batches },
        }
    }

    /// The epoch that this is within or at the end of, from 1.
    pub(crate) fn epoch(self) -> usize {
        (self.n_epochs + usize::from(self.n_batches > 0)).max(1)
    }

    /// The batch of that epoch, from 1, if this is within it.
    pub(crate) fn batch(self) -> Option<usize> {
        (self.n_batches > 0).then_some(self.n_batches)
    }

    /// The epochs so far, of `n_batches` each: 1.5 in the middle of the second.
    pub(crate) fn in_epochs(self, n_batches: usize) -> f64 {
        self.n_epochs as f64 + self.n_batches as f64 / n_batches.max(1) as f64
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.n_batches {
            0 => write!(f, "{}", self.n_epochs),
            n_batches => write!(f, "{}+{n_batches}", self.n_epochs),
        }
    }
}

impl FromStr for Position {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (n_epochs, n_batches) = text.split_once('+').unwrap_or((text, "0"));
        Ok(Self { n_epochs: n_epochs.parse()?, n_batches: n_batches.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_ordered_and_parse_back() {
        let texts = ["0", "0+4", "1", "1+2", "1+10", "2"];
        let positions = texts.map(|text| text.parse::<Position>().expect("a position"));
        assert!(positions.is_sorted(), "{positions:?}");
        assert_eq!(positions.map(|position| position.to_string()), texts);
        assert_eq!(positions.map(Position::epoch), [1, 1, 1, 2, 2, 2]);
        assert_eq!(positions.map(|position| position.in_epochs(20)), [0.0, 0.2, 1.0, 1.1, 1.5, 2.0]);
        for position in positions {
            assert!(
                position == Position::default() || Position::of(position.epoch(), position.batch()) == position,
                "{position}"
            );
        }
        assert!("1+".parse::<Position>().is_err() && "1.5".parse::<Position>().is_err(), "neither is a position");
    }
}
