use brisk_kernels::expr::Expr;
use brisk_kernels::{DType, MixRows, Mixing, N_QUANTILES};

use crate::elementwise::ElementwiseOperation;
use crate::error::Error;
use crate::graph::Graph;
use crate::graph::tensor::Tensor;
use crate::rows::DeviceBatch;

/// The partners of a batch, as [`Graph::mix_rows`] draws them: the rows that its rows are mixed with.
#[derive(Debug, Clone)]
pub struct MixedRows {
    /// The partner of each row. Their weights are those of the rows that they are mixed with.
    pub partners: DeviceBatch,
    /// `[n]` f32: the share of the partner in each row, 0 to 1.
    pub shares: Tensor,
    /// `[n, n_lines, 1]` and `[n, 1, n_columns]`, whose product is the share of the partner in each element.
    elements: [Tensor; 2],
}

const OP: &str = "mix_rows";

impl Graph {
    /// Draws a partner for each row of `batch` from all rows of the epoch, and its share, according to `mixing`. Both depend only
    /// on the seed, the epoch of the batch's order and the row.
    ///
    /// `row` is the shape of a row: height, width and channels for [`Mixing::CutMix`], any other for [`Mixing::Mixup`].
    ///
    /// # Errors
    /// [`Error::Shape`] if CutMix is given rows that are not images; [`Error::Refused`] for a batch of a
    /// [part](DeviceBatch::of_part) of a table, which does not have all rows; [`Error::Program`] for an `alpha` that is not above
    /// 0 and at most 1000; [`Error::ForeignTensor`] for a batch of another graph.
    /// # Cost
    /// One kernel, which writes a number for each line and column of an image.
    /// # Reference
    /// [`MixRows`], which names the transforms of torchvision.
    #[track_caller]
    pub fn mix_rows(&self, batch: &DeviceBatch, row: &[usize], mixing: &Mixing, seed: u64) -> MixedRows {
        let n = batch.n;
        let quantiles = || mixing.quantiles().map_err(brisk_program::Error::from);
        let checked = self.check_own(OP, "batch", &batch.weights).and_then(|()| check_whole(batch));
        let checked = checked.and_then(|()| Ok((cut_of(row, mixing)?, quantiles()?)));
        if let (Ok((cut, quantiles)), false) = (&checked, batch.weights.is_failed()) {
            let kernel = MixRows { n, cut: *cut, seed };
            match self.try_mix(batch, kernel, quantiles) {
                Ok(mixed) => return mixed,
                Err(error) => self.fail(error),
            }
        }
        if let Err(error) = checked {
            self.fail(error);
        }
        let failed = |shape: &[usize]| self.failed_tensor(DType::F32, shape);
        let partners = DeviceBatch { weights: failed(&[n]), ..batch.clone() };
        MixedRows { partners, shares: failed(&[n]), elements: [failed(&[n, 1, 1]), failed(&[n, 1, 1])] }
    }

    #[track_caller]
    fn try_mix(&self, batch: &DeviceBatch, kernel: MixRows, quantiles: &[u32]) -> Result<MixedRows, Error> {
        let MixRows { n, cut, .. } = kernel;
        let [n_lines, n_columns] = cut.map_or([1, 1], |[height, width, n_channels]| [height, width * n_channels]);
        let quantiles = self.constant_codes("quantiles", quantiles, &[N_QUANTILES]).slice();
        let partners = self.transient("partners", DType::U32, n);
        let [shares, lines, columns] = [("shares", n), ("lines", n * n_lines), ("columns", n * n_columns)]
            .map(|(name, len)| self.transient(name, DType::F32, len));
        self.try_push(kernel, &[batch.rows, batch.order, quantiles, partners, shares, lines, columns])?;
        Ok(MixedRows {
            partners: DeviceBatch { rows: partners, ids: partners, ..batch.clone() },
            shares: self.wrap(shares, &[n]),
            elements: [self.wrap(lines, &[n, n_lines, 1]), self.wrap(columns, &[n, 1, n_columns])],
        })
    }
}

impl MixedRows {
    /// The rows mixed with their partners: `(1 - s) x + s partners`, where `s` is the share of the partner in an element, for
    /// CutMix 0 or 1.
    ///
    /// # Shapes
    /// `x`, `partners` and the result: `[n, …]`, rows of the shape that was given to [`Graph::mix_rows`].
    /// # Errors
    /// [`Error::Shape`] for rows of another shape; [`Error::ForeignTensor`].
    #[track_caller]
    pub fn mix(&self, x: &Tensor, partners: &Tensor) -> Tensor {
        let [lines, columns] = &self.elements;
        let n = lines.shape()[0];
        let n_lines = lines.shape()[1];
        let n_columns = x.n_elements().checked_div(n * n_lines).unwrap_or(0);
        let [own, others] = [x, partners].map(|images| images.reshape(&[n, n_lines, n_columns]));
        let [x_at, partner_at, line, column] = [0, 1, 2, 3].map(Expr::input);
        let share = line * column;
        let mixed = (1.0 - share.clone()) * x_at + share * partner_at;
        x.graph().apply(ElementwiseOperation::new("mix", mixed), &[&own, &others, lines, columns]).reshape(x.shape())
    }
}

fn check_whole(batch: &DeviceBatch) -> Result<(), Error> {
    if batch.id_table.is_none() {
        return Ok(());
    }
    let found = "rows of which only a part is on the device (they are streamed)".to_owned();
    let expected = "all rows on the device, since a row is mixed with any other of the epoch; make them resident (`FeedChoice::Resident`), or do not mix them";
    Err(Error::Refused { op: OP, found, expected })
}

/// The images from which rectangles are cut, if any are.
fn cut_of(row: &[usize], mixing: &Mixing) -> Result<Option<[usize; 3]>, Error> {
    match (mixing.is_cut(), row) {
        (false, _) => Ok(None),
        (true, &[height, width, n_channels]) => Ok(Some([height, width, n_channels])),
        (true, found) => {
            let expected = "images of height, width and channels, of which CutMix replaces rectangles".to_owned();
            Err(Error::Shape { op: OP, arg: "row", expected, found: found.to_vec() })
        }
    }
}
