use std::fmt;
use std::marker::PhantomData;

use crate::dtype::Element;
use crate::error::Error;
use crate::format::FEATURES;
use crate::row_store::RowStore;

/// A table whose features are gathered as they are stored, such as images in bytes; created by
/// [`Table::typed`](crate::Table::typed) and its siblings.
///
/// With the feature `loader`, a `brisk_loader::RowSource` whose features are `T`.
///
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("images.safetensors");
/// use brisk_table::{DType, Schema, Table, TableWriter};
///
/// let schema = Schema { dtype: DType::U8, label_dtype: DType::U8, ..Schema::shaped(&[2, 2]) };
/// let mut writer = TableWriter::create(&path, schema)?;
/// writer.push(&[0_u8, 1, 2, 3, 252, 253, 254, 255], &[7_u8, 8])?;
/// writer.finish()?;
///
/// let table = Table::open(&path)?;
/// let images = table.typed::<u8>()?;
/// # #[cfg(feature = "loader")] {
/// use brisk_loader::{RowBuffers, RowSource, RowSelection};
/// let (mut pixels, mut labels) = ([0; 4], [0.0]);
/// images.gather(RowSelection::Numbers(&[1]), RowBuffers::new(&mut pixels, &mut labels))?;
/// assert_eq!((pixels, labels), ([252, 253, 254, 255], [8.0]));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Typed<'a, S, T> {
    store: &'a S,
    features: PhantomData<fn() -> T>,
}

#[cfg_attr(not(feature = "loader"), expect(dead_code, reason = "only the loader gathers rows"))]
impl<'a, S: RowStore, T: Element> Typed<'a, S, T> {
    pub(crate) fn new(store: &'a S) -> Result<Self, Error> {
        let stored = store.parts().features.dtype;
        if stored != T::DTYPE {
            return Err(store.wrong_dtype(FEATURES, stored, T::DTYPE));
        }
        Ok(Self { store, features: PhantomData })
    }

    pub(crate) fn store(&self) -> &'a S {
        self.store
    }
}

impl<S, T> Clone for Typed<'_, S, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, T> Copy for Typed<'_, S, T> {}

impl<S: fmt::Debug, T> fmt::Debug for Typed<'_, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Typed").field(self.store).finish()
    }
}
