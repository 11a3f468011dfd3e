#include "textflag.h"

// Both kernels use SSE alone, which every amd64 processor has, and multiply and add in two roundings in the
// order of the plain Go ones: the results are the same to the bit.

// func addRows(out *[channels]float32, rows *float32, x *float32, n int)
// out[c] += x[j]*rows[j*channels+c] for each j whose x[j] is not zero
TEXT ·addRows(SB), NOSPLIT, $0-32
	MOVQ out+0(FP), DI
	MOVQ rows+8(FP), SI
	MOVQ $2, BX

half:
	MOVQ   SI, R8
	MOVQ   x+16(FP), DX
	MOVQ   n+24(FP), CX
	MOVUPS (DI), X0
	MOVUPS 16(DI), X1
	MOVUPS 32(DI), X2
	MOVUPS 48(DI), X3
	MOVUPS 64(DI), X4
	MOVUPS 80(DI), X5
	MOVUPS 96(DI), X6
	MOVUPS 112(DI), X7
	TESTQ  CX, CX
	JZ     done

row:
	MOVL   (DX), AX
	TESTL  AX, AX
	JZ     next
	MOVSS  (DX), X8
	SHUFPS $0, X8, X8
	MOVUPS (R8), X9
	MOVUPS 16(R8), X10
	MOVUPS 32(R8), X11
	MOVUPS 48(R8), X12
	MULPS  X8, X9
	MULPS  X8, X10
	MULPS  X8, X11
	MULPS  X8, X12
	ADDPS  X9, X0
	ADDPS  X10, X1
	ADDPS  X11, X2
	ADDPS  X12, X3
	MOVUPS 64(R8), X9
	MOVUPS 80(R8), X10
	MOVUPS 96(R8), X11
	MOVUPS 112(R8), X12
	MULPS  X8, X9
	MULPS  X8, X10
	MULPS  X8, X11
	MULPS  X8, X12
	ADDPS  X9, X4
	ADDPS  X10, X5
	ADDPS  X11, X6
	ADDPS  X12, X7

next:
	ADDQ $4, DX
	ADDQ $256, R8
	DECQ CX
	JNZ  row

done:
	MOVUPS X0, (DI)
	MOVUPS X1, 16(DI)
	MOVUPS X2, 32(DI)
	MOVUPS X3, 48(DI)
	MOVUPS X4, 64(DI)
	MOVUPS X5, 80(DI)
	MOVUPS X6, 96(DI)
	MOVUPS X7, 112(DI)
	ADDQ   $128, DI
	ADDQ   $128, SI
	DECQ   BX
	JNZ    half
	RET

// func axpy(y *float32, a float32, x *float32, n int)
// y[i] += a*x[i], n a multiple of 8
TEXT ·axpy(SB), NOSPLIT, $0-32
	MOVQ   y+0(FP), DI
	MOVSS  a+8(FP), X8
	MOVQ   x+16(FP), SI
	MOVQ   n+24(FP), CX
	SHUFPS $0, X8, X8

eight:
	SUBQ   $8, CX
	JL     end
	MOVUPS (SI), X0
	MOVUPS 16(SI), X1
	MOVUPS (DI), X2
	MOVUPS 16(DI), X3
	MULPS  X8, X0
	MULPS  X8, X1
	ADDPS  X0, X2
	ADDPS  X1, X3
	MOVUPS X2, (DI)
	MOVUPS X3, 16(DI)
	ADDQ   $32, SI
	ADDQ   $32, DI
	JMP    eight

end:
	RET
