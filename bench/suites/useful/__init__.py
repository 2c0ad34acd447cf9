"""Thirty ordinary questions on each of three data sets, asked three ways: is what comes back of any use?"""
