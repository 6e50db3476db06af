"""From result tables, posteriors and graphs to what people look at: figures, tables, one offline page."""
