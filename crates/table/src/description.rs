//! The methods that describe a table, implemented for every kind of table by a macro.

/// Implements the methods for a table that is a [`RowStore`](crate::row_store::RowStore).
macro_rules! describe {
    ([$($generics:tt)*] $table:ty) => {
        impl<$($generics)*> $table {
            /// The path of the file, or of the index of several files, or its URL without secrets.
            pub fn path(&self) -> &std::path::Path {
                $crate::row_store::RowStore::path(self)
            }

            /// The number of rows.
            pub fn n_rows(&self) -> usize {
                $crate::row_store::RowStore::n_rows(self)
            }

            /// The number of features per row: the product of [`row_shape`](Self::row_shape); 0 for a table that has only
            /// categories.
            pub fn n_cols(&self) -> usize {
                self.parts().n_cols
            }

            /// The shape of one row's features.
            pub fn row_shape(&self) -> &[usize] {
                &self.parts().features.shape[1..]
            }

            /// The dtype of the features.
            pub fn dtype(&self) -> $crate::DType {
                self.parts().features.dtype
            }

            /// The number of labels per row: 1 unless the tensor of labels has several columns.
            pub fn n_labels(&self) -> usize {
                self.parts().n_labels()
            }

            /// The dtype of the labels; `F32` if the table was opened without labels and they are gathered as 0.
            pub fn label_dtype(&self) -> $crate::DType {
                self.parts().label_dtype()
            }

            /// The names of the columns; empty if the writer of the table gave none.
            pub fn column_names(&self) -> &[String] {
                &self.parts().metadata.column_names
            }

            /// The names of the labels; empty if the writer of the table gave none.
            pub fn label_names(&self) -> &[String] {
                &self.parts().metadata.label_names
            }

            /// The number of categorical columns.
            pub fn n_categories(&self) -> usize {
                self.parts().n_categories()
            }

            /// The values that the codes of each categorical column stand for; empty for a file written by another program.
            pub fn dictionaries(&self) -> &[$crate::Dictionary] {
                &self.parts().metadata.dictionaries
            }

            /// The names of the classes, if labels are class numbers counted from 0; empty if labels are plain numbers.
            pub fn classes(&self) -> &[String] {
                &self.parts().metadata.classes
            }

            /// The values that replaced missing values when the table was imported, one for each of the first columns; `None` if
            /// no values were filled in. The remaining columns are the indicators of missing values.
            pub fn imputed(&self) -> Option<&[f32]> {
                self.parts().metadata.imputed.as_deref()
            }

            /// Whether rows have weights.
            pub fn has_weights(&self) -> bool {
                self.parts().weights.is_some()
            }

            /// The statistics of each column, gathered when the table was written; `None` for files written by another program.
            /// Rows of several dimensions, such as images, have them for each index of the last dimension, the channel.
            pub fn statistics(&self) -> Option<&[$crate::ColumnStatistics]> {
                $crate::row_store::RowStore::statistics(self)
            }

            /// Checks every byte against the checksums that were written with the table, on all cores.
            ///
            /// # Errors
            /// [`Error::Checksum`](crate::Error::Checksum) with the first damaged block and its file;
            /// [`Error::NoChecksums`](crate::Error::NoChecksums) if a file has none, for example if another program wrote it;
            /// [`Error::Io`](crate::Error::Io) if a file that is not in memory cannot be read.
            /// # Cost
            /// Reads all bytes of all files, those that are not in memory a MiB for each thread at a time.
            pub fn verify(&self) -> Result<(), $crate::Error> {
                self.verify_with_progress(|_| {})
            }

            /// Like [`verify`](Self::verify); calls `progress` from time to time on the caller's thread.
            pub fn verify_with_progress(&self, mut progress: impl FnMut($crate::Verified)) -> Result<(), $crate::Error> {
                $crate::row_store::RowStore::verify(self, &mut progress)
            }

            /// The table as rows of `T`, the type in which features are stored: nothing is converted.
            ///
            /// # Errors
            /// [`Error::WrongDType`](crate::Error::WrongDType) if `T` is not what the table holds.
            pub fn typed<T: $crate::Element>(&self) -> Result<$crate::Typed<'_, Self, T>, $crate::Error> {
                $crate::Typed::new(self)
            }

            /// What the table was imported from.
            pub fn source(&self) -> Option<&$crate::SourceIdentity> {
                self.parts().metadata.source.as_ref()
            }
        }
    };
}
pub(crate) use describe;
