// Part: the entry of a row. Expects `params` and the binding `index`.

fn entry_of(row: u32) -> u32 {
    let code = index[row * params.n_index_cols + params.index_col];
    return select(0u, code, code < params.n_entries);
}
