//! What every kind of table says of itself: the same methods, stamped.

/// Implements them for a table that is a [`RowStore`](crate::row_store::RowStore).
macro_rules! describe {
    ([$($generics:tt)*] $table:ty) => {
        impl<$($generics)*> $table {
            /// How many rows there are.
            pub fn n_rows(&self) -> usize {
                $crate::row_store::RowStore::n_rows(self)
            }

            /// How many features a row has: the product of [`row_shape`](Self::row_shape); 0 for a table of categories alone.
            pub fn n_cols(&self) -> usize {
                self.parts().n_cols
            }

            /// The shape of one row's features.
            pub fn row_shape(&self) -> &[usize] {
                &self.parts().features.shape[1..]
            }

            /// What the features are.
            pub fn dtype(&self) -> $crate::DType {
                self.parts().features.dtype
            }

            /// How many labels a row has: 1 unless the tensor of labels has several columns.
            pub fn n_labels(&self) -> usize {
                self.parts().n_labels()
            }

            /// What the labels are; `F32` where there are none and they are 0.
            pub fn label_dtype(&self) -> $crate::DType {
                self.parts().label_dtype()
            }

            /// The columns' names; none for a table whose writer gave none.
            pub fn column_names(&self) -> &[String] {
                &self.parts().metadata.column_names
            }

            /// The labels' names; none for a table whose writer gave none.
            pub fn label_names(&self) -> &[String] {
                &self.parts().metadata.label_names
            }

            /// How many categorical columns there are.
            pub fn n_categories(&self) -> usize {
                self.parts().n_categories()
            }

            /// What the codes of each categorical column stand for; none in a file that another program wrote.
            pub fn dictionaries(&self) -> &[$crate::Dictionary] {
                &self.parts().metadata.dictionaries
            }

            /// The names of the classes that labels are numbers of, counted from 0; none if labels are just numbers.
            pub fn classes(&self) -> &[String] {
                &self.parts().metadata.classes
            }

            /// What stands where values were missing when the table was imported: a value for each of the first columns; `None` if none were
            /// filled in. The columns beyond are the indicators of missing values.
            pub fn imputed(&self) -> Option<&[f32]> {
                self.parts().metadata.imputed.as_deref()
            }

            /// Whether rows have weights.
            pub fn has_weights(&self) -> bool {
                self.parts().weights.is_some()
            }

            /// What the table was imported from.
            pub fn source(&self) -> Option<&$crate::SourceIdentity> {
                self.parts().metadata.source.as_ref()
            }
        }
    };
}
pub(crate) use describe;
