"""Network, graph, bags and labels in; fitted members and posteriors out."""
