"""dit_dask: how much does any one person's record change what an adversary can infer about that person?"""
