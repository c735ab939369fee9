"""A random workload under random faults, and the judgement whether each change arrived once, in order, and all of them."""
